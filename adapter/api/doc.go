// Package api is the sidecar's HTTP interface and its client. It listens on a Unix socket, where
// the kernel identifies the caller, and on TCP, where a MUNGE credential bound to the request does.
//
//	GET  /v1/status                what the sidecar is and drives         Status
//	GET  /v1/cluster               nodes, other jobs, reservations        Cluster
//	GET  /v1/jobs[?all=1&plan=1]   evolving jobs (all: ended ones too;     []Job
//	                               plan: with what is planned and was)
//	GET  /v1/jobs/{id}             one of them                            Job
//	GET  /v1/jobs/{id}/allocation  what it has now                        Allocation
//	POST /v1/jobs/{id}/next        ends the present step and waits        NextRequest → Allocation
//	POST /v1/jobs/{id}/change      changes what is still to come          ChangeRequest → Change
//	POST /v1/jobs/{id}/offer       waits for an offer to a malleable job  OfferQuery → Offer
//	POST /v1/jobs/{id}/answer      answers it, waits until that is done   AnswerRequest → Answer
//	POST /v1/jobs/{id}/progress    how far the application is             ProgressReport → Progress
//	POST /v1/jobs/{id}/cancel-holds  has its promise lapse; for operators CancelHolds → Cancelled
//	POST /v1/places                where a job would run                  PlacementQuery → Placement
//	POST /v1/drain                   switches the sidecar off; for operators DrainRequest → Drain
//	POST /v1/resume                  switches it on again; for operators {} → Status
//	GET  /v1/strategies[/{name}]   planning algorithms                    []Strategy, Strategy
//	POST /v1/strategies            look for plugins again                 StrategyRequest → []Strategy
//	POST /v1/strategies/{name}/use put one (@configured: the site's) in use StrategyRequest → Strategy
//	GET  /v1/policies              malleability policies                  []Strategy
//	POST /v1/policies/{name}/use   put one (@configured: the site's) in use StrategyRequest → Strategy
//	POST /v1/strategies/{name}/try plan with it, act on nothing           StrategyRequest → Trial
//	POST /v1/ship                  settings and a piece of the database, for the sidecar on a second host ShipRequest → Shipment
//
//	GET  /healthz, /readyz         for supervisors, without a credential  text
//	GET  /web/                     the page; here on the Unix socket alone HTML
//	GET  /metrics                  for Prometheus, to who may read        text
//
// A caller who says "?submits=1" may be asked to submit a job first: see submit.go.
//
// Bodies are JSON; an answer that is not 2xx is an Error. If a next is not answered within 30 s,
// the answer has Ready false: ask again with the same From.
//
// # Who calls
//
// On TCP, a request carries "Authorization: MUNGE <credential>". The credential's payload is six
// lines, each ended by a newline: "evoslurm-api-2", the cluster's name in lower case, the server's
// IP:port as the connection reaches it, the method, the path with its query as in the request line,
// and the SHA-256 of the body in lower-case hexadecimal. It is valid once, for this request to this
// server, for a minute (munge.max_age), and only if it was made after the server began to listen
// there. So a false server cannot reuse it.
//
// Users act on their own jobs; root, the sidecar's own user, and operators act on all jobs.
// Everyone may read, even without a credential, unless the configuration restricts it; then users
// read only their own jobs.
//
// # Who answers
//
// The answer to a request with a credential that MUNGE accepts carries "Evoslurm-Answer:
// <credential>". Its payload is four lines: "evoslurm-answer-1"; the SHA-256 of the request's
// payload as the server sees the request, followed by the request's credential; the status; the
// SHA-256 of the body. A Client believes only answers of root, SlurmUser, and the configured
// account. After any other answer it continues to wait for the sidecar, and names the sender. On
// the Unix socket, it asks the kernel for the listening user. All texts in answers are made
// printable (text.go).
//
// # Where things are
//
// A row calls those below it, never one above.
//
//	server.go                      listens and serves            client.go, calls.go, trust.go, away.go
//	routes.go, answers.go          from connections to handlers  pages.go, visitor.go: the page's way to them
//	reads.go, waits.go             the handlers                  operators.go: those for operators
//	rights.go, sight.go            who may read and do what      discreet.go: texts without others' jobs
//	auth.go, replay.go             who calls                     target.go: what credentials are for
//	limit.go, shares.go, rates.go  what callers share            lines.go: of the log
//	types.go, change.go, offer.go  what travels                caller.go, errors.go, munge.go, text.go, bounds.go
package api
