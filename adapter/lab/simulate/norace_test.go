//go:build !race

package simulate

const race = false
