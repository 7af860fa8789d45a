// Package strategy is the SDK for strategies that run as separate processes: Serve for the process,
// Start for its caller. The contract is ../proto/strategy.proto. README.md, one folder up, shows
// how to write a strategy in ten minutes.
//
//	Definition   what a strategy is: name, parameters, how to make it   definition.go
//	FromFit      Algorithm 1 around the fit of one job                  fit.go
//	Request      what is planned, and Run, which plans it here          request.go
//	Serve        a plugin process                                       serve.go, server.go
//	Start        a client of one                                        client.go
//	Call         one call of Plan, for one cycle                        call.go
//	Check        whether an answer is valid                             check.go
//	Resize       malleability policies: which jobs grow or shrink       resize.go
//
// The same Definition works in a plugin and built in.
package strategy
