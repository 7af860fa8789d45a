package schematest

import (
	"encoding/json"
	"slices"
	"testing"
)

func TestBroken(t *testing.T) {
	const promise = `{"a": {"type": "number"}, "b": {"type": ["array", "null"]}}`
	for is, want := range map[string][]string{
		promise: nil,
		`{"a": {"type": "number"}, "b": {"type": ["null", "string", "array"]}, "c": {}}`: nil,
		`{"b": {"type": ["array"]}}`:              {"there is no /a any more", "/b/type has no null any more"},
		`{"a": {"type": "string"}, "b": "array"}`: {"/a/type is string, and not number any more", "there is no /b/type any more"},
	} {
		if got := Broken(decoded(t, promise), decoded(t, is)); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", is, got, want)
		}
	}
}

func decoded(t *testing.T, text string) (v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	return v
}
