// Package profile holds evolution profiles (Klein and Pérez 2011, section 3.1): their text form,
// their algebra, the expand limit, and profiles placed in time.
package profile
