// Package api is the sidecar's HTTP interface and its client. It listens on a
// Unix socket, where the kernel tells who calls, and on TCP, where a MUNGE
// credential bound to the request does.
//
//	GET  /v1/status                what the sidecar is and drives         Status
//	GET  /v1/jobs[?all=1]          evolving jobs (all: ended ones too)    []Job
//	GET  /v1/jobs/{id}             one of them                            Job
//	GET  /v1/jobs/{id}/allocation  what it holds now                      Allocation
//	POST /v1/jobs/{id}/next        ends the present step and waits        NextRequest → Allocation
package api
