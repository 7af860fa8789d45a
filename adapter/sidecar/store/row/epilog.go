package row

// Epilog is how long jobs of a partition are COMPLETING, in seconds. A row with less than 0 is deleted.
type Epilog struct {
	Partition string
	Seconds   int64
}
