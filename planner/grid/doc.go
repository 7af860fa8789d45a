// Package grid is a coarse view of a timeline that quickly shows where a job cannot start. Plans
// are the same without it, only slower.
package grid
