// Package naive holds plain reference implementations, against which tests compare.
package naive
