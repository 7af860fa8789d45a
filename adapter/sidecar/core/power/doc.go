// Package power is a room of the core: idle nodes that go off because nothing is planned on them, and come up again in time.
package power
