package workload

// ReadAtMost is Read with another bound on the size.
var ReadAtMost = read
