// Package schematest holds JSON schemas to what they have promised.
package schematest

import (
	"fmt"
	"maps"
	"slices"
)

// Broken returns what of a promise is not so, each with its place. There may be more than is promised.
func Broken(promised, is any) []string { return broken("", promised, is) }

func broken(at string, promised, is any) (all []string) {
	switch p := promised.(type) {
	case map[string]any:
		has, _ := is.(map[string]any)
		for _, key := range slices.Sorted(maps.Keys(p)) {
			if has[key] == nil {
				all = append(all, fmt.Sprintf("there is no %s/%s any more", at, key))
				continue
			}
			all = append(all, broken(at+"/"+key, p[key], has[key])...)
		}
	case []any: // a set
		has, _ := is.([]any)
		for _, word := range p {
			if !slices.Contains(has, word) {
				all = append(all, fmt.Sprintf("%s has no %v any more", at, word))
			}
		}
	default:
		if promised != is {
			all = append(all, fmt.Sprintf("%s is %v, and not %v any more", at, is, promised))
		}
	}
	return all
}
