// Package talk answers the waiting calls of scripts and users.
package talk
