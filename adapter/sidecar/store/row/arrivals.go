package row

// Arrivals holds how many nodes jobs that nobody planned took at once in a partition, within one hour of the week.
type Arrivals struct {
	Partition string
	Hour      int   // of the week, in UTC, from Monday 0:00; -1: delete the partition's rows
	Weeks     int   // in which the hour was watched
	Nodes     []int // in the last periods with arrivals, oldest first
}
