package web

import (
	"sync"
	"time"
)

// Rendered data is reused for this long, less than the interval at which a page refetches; at most
// this many are kept.
const (
	keptFor  = 2 * time.Second
	mostKept = 16
)

// kept caches data rendered a moment ago. If several readers ask for the same at once, one renders
// it and the others wait.
type kept struct {
	mu    sync.Mutex
	all   map[string]*keptPage
	clock func() time.Time
}

type keptPage struct {
	mu   sync.Mutex
	at   time.Time // zero if it is not rendered, or could not be
	body any
}

// get returns the cached data of that name, or makes it.
func (k *kept) get(name string, makeIt func() (any, error)) (any, error) {
	k.mu.Lock()
	page := k.all[name]
	if page == nil {
		for name, p := range k.all {
			if p.mu.TryLock() { // not being made at present
				if k.clock().Sub(p.at) >= keptFor {
					delete(k.all, name)
				}
				p.mu.Unlock()
			}
		}
		if page = new(keptPage); len(k.all) < mostKept {
			k.all[name] = page
		}
	}
	k.mu.Unlock()
	page.mu.Lock()
	defer page.mu.Unlock()
	if age := k.clock().Sub(page.at); age >= 0 && age < keptFor {
		return page.body, nil
	}
	body, err := makeIt()
	if err != nil {
		return nil, err
	}
	page.at, page.body = k.clock(), body
	return body, nil
}
