// Package talk answers scripts and users: waiting calls, changes of profiles, and what the sidecar shows.
package talk
