// Package profile is evolution profiles (Klein and Pérez 2011, section 3.1): what
// people write, their algebra, the expand limit, and profiles that have been placed
// in time.
package profile
