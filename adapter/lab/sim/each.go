package sim

import (
	"context"
	"sync"
	"sync/atomic"
)

// each does n things on that many workers; the first error ends it. progress, if not nil, is called
// after each, by one worker at a time.
func each(ctx context.Context, n, workers int, do func(ctx context.Context, i int) error, progress func()) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	var one sync.Mutex
	var all sync.WaitGroup
	for range max(workers, 1) {
		all.Go(func() {
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				if err := do(ctx, i); err != nil {
					cancel(err)
					return
				}
				if progress != nil {
					one.Lock()
					progress()
					one.Unlock()
				}
			}
		})
	}
	all.Wait()
	return context.Cause(ctx)
}
