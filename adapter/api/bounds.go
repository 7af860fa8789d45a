package api

import "time"

// Bounds that the server and its clients share.
const (
	maxHeader = 8 << 10  // bytes; a credential has at most half of it
	maxBody   = 16 << 10 // bytes of a request
	maxForm   = 64 << 10 // bytes of a form of the page

	headTimeout   = 2 * time.Second // for the head of a request
	idleTimeout   = 2 * time.Minute // of a kept connection
	credentialTTL = time.Minute

	// DefaultWait bounds one long poll; see Server.Wait.
	DefaultWait = 30 * time.Second
)

// unixPrefix begins the address of a Unix socket.
const unixPrefix = "unix://"
