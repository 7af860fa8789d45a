// Package naive holds simple reference implementations for tests.
package naive
