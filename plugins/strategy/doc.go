// Package strategy is the SDK of strategies that run as processes of their own:
// Serve for the process, Start for the one that calls it. The contract is
// ../proto/strategy.proto; README.md one folder up shows how to write a strategy
// in ten minutes.
//
//	Definition   what a strategy is: name, parameters, how to make it   definition.go
//	FromFit      Algorithm 1 around the fit of one job                  fit.go
//	Request      what is planned, and Run, which plans it here          request.go
//	Serve        a plugin process                                       serve.go, server.go
//	Start        a client of one                                        client.go
//	Call         one call of Plan, for one cycle                        call.go
//	Check        what may be believed of an answer                      check.go
//	Resize       malleability policies: who grows, who shrinks          resize.go
//
// The same Definition serves in a plugin and built in.
package strategy
