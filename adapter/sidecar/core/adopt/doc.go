// Package adopt makes evolving jobs of parked jobs with a marker, reads what they ask for, and takes jobs back after
// a restart or a lost database.
package adopt
