// Package claims decides whether jobs that may grow up to a claim can ever deadlock. It does so in
// the manner of the banker's algorithm (Dijkstra 1965; Habermann 1969), for one kind of resource,
// nodes, where each job may use only some nodes.
//
// A job with a claim has declared how many nodes it will ever want at once. It asks for them when
// it needs them (the paper's non-predictable applications) and returns nothing while it waits. A
// job that has its claim needs nothing more to finish, so its nodes come back in finite time. A
// state is safe if the jobs with claims can be ordered so that each can get its claim from nodes
// that are free or that earlier jobs return. Jobs are admitted, and may grow, only into safe
// states. docs/claims.md explains why no job then waits forever.
package claims

// Job is a job with a claim.
type Job struct {
	Has   []int // nodes, without duplicates
	May   []int // nodes that it may have, with or without those that it has
	Claim int   // largest number of nodes at once
}

// Order returns an order in which all jobs can get their claims, as positions in the list, on nodes
// 0 … n-1. A gone node is useless to any job that does not hold it. It returns false if there is no
// such order: the state is not safe. Each time, it takes the first job that can get its claim. What
// that job returns helps others and hinders none, so if any order exists, one begins with this job.
// O(jobs² × nodes).
func Order(n int, gone []bool, jobs []Job) (order []int, safe bool) {
	has := make([]int, n) // owner of each node that is not done: 1 + its position
	for j, job := range jobs {
		for _, node := range job.Has {
			has[node] = j + 1
		}
	}
	done := make([]bool, len(jobs))
	for len(order) < len(jobs) {
		next := -1
		for j := range jobs {
			if !done[j] && reach(gone, has, jobs[j]) >= jobs[j].Claim {
				next = j
				break
			}
		}
		if next < 0 {
			return order, false
		}
		done[next] = true
		order = append(order, next)
		for _, node := range jobs[next].Has {
			has[node] = 0
		}
	}
	return order, true
}

// reach returns how many nodes a job can have once all nodes that no other job with a claim holds
// have come back.
func reach(gone []bool, has []int, job Job) int {
	count := len(job.Has)
	for _, node := range job.May {
		if has[node] == 0 && (gone == nil || !gone[node]) {
			count++
		}
	}
	return count
}

// Safe reports whether such an order exists.
func Safe(n int, gone []bool, jobs []Job) bool {
	_, safe := Order(n, gone, jobs)
	return safe
}
