// Package naive holds obviously correct code for tests to compare with, and runs these tests.
package naive
