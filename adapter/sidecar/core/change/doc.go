// Package change decides on changes of a job's profile on demand. It tries each on a copy of the core first.
package change
