// Package systemd tells systemd how the sidecar is: whether it is ready, alive, reloading, or stopping, with a status
// line; and it writes the log with fields into the journal. Without systemd, it does nothing.
package systemd
