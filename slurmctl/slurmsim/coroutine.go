package slurmsim

import "iter"

// coroutine runs one process after another. Creating one costs more than most processes do, and the
// race detector never forgets one.
type coroutine struct {
	next  func() (struct{}, bool)
	stop  func()
	yield func(struct{}) bool
	task  func() // nil if it has none

	resumed bool // the task has begun again, after a checkpoint, and has not come to where it waited
}

func newCoroutine() *coroutine {
	w := &coroutine{}
	w.next, w.stop = iter.Pull(func(yield func(struct{}) bool) {
		w.yield = yield
		for w.run() && yield(struct{}{}) {
		}
	})
	return w
}

// run runs the task to its end. It returns false if the task was killed; the coroutine is then
// useless.
func (w *coroutine) run() (whole bool) {
	defer func() {
		if r := recover(); r != nil && r != any(errKilled) {
			panic(r)
		}
	}()
	w.task()
	w.task = nil
	return true
}

// coroutine returns an idle coroutine.
func (c *Cluster) coroutine() *coroutine {
	last := len(c.idle) - 1
	if last < 0 {
		return newCoroutine()
	}
	w := c.idle[last]
	c.idle = c.idle[:last]
	return w
}
