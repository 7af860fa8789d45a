// Package claims decides whether jobs that may grow up to a claim can never come to wait for
// each other for ever: admission in the manner of the banker's algorithm (Dijkstra 1965;
// Habermann 1969), for one kind of resource, nodes, of which every job may have some.
//
// A job with a claim has said how many nodes it will ever want at once. It asks for them
// when it needs them (the paper's non-predictable applications), and gives nothing back
// while it waits. Who has none needs nothing more to come to its end: its nodes come back
// in finite time. A state is safe if the jobs with claims can be put into an order in which
// each can have its claim of what nobody else with a claim has, or had: the first one comes
// to its end, with what that gives back the second one does, and so on. Jobs are admitted,
// and let grow, only into safe states. Why nobody waits for ever then is in
// docs/claims.md.
package claims

// Job is a job with a claim.
type Job struct {
	Has   []int // nodes, no one twice
	May   []int // nodes that it may have, those that it has or not among them
	Claim int   // how many it may have at once
}

// Order gives an order in which all jobs can come to their claims, as positions in the list,
// on nodes 0 … n-1 of which those that are gone are of no use to who does not have them.
// It reports false where there is none: the state is not safe. Each time the first job that
// can is taken: what one gives back helps others and hinders nobody, so if there is any
// order, there is one that begins with it. O(jobs² × nodes).
func Order(n int, gone []bool, jobs []Job) (order []int, safe bool) {
	has := make([]int, n) // who has a node, and is not done: 1 + its position
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

// reach is how many nodes a job has at most once all have come back that no other job with a
// claim has.
func reach(gone []bool, has []int, job Job) int {
	count := len(job.Has)
	for _, node := range job.May {
		if has[node] == 0 && (gone == nil || !gone[node]) {
			count++
		}
	}
	return count
}

// Safe reports whether there is an order.
func Safe(n int, gone []bool, jobs []Job) bool {
	_, safe := Order(n, gone, jobs)
	return safe
}

// MayHave reports whether job j may be given further nodes: it stays below its claim, and
// the state after is safe. The nodes are nobody's who has a claim.
func MayHave(n int, gone []bool, jobs []Job, j int, nodes []int) bool {
	if len(jobs[j].Has)+len(nodes) > jobs[j].Claim {
		return false
	}
	after := append([]Job(nil), jobs...)
	after[j].Has = append(append([]int(nil), jobs[j].Has...), nodes...)
	return Safe(n, gone, after)
}
