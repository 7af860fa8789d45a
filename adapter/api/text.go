package api

import (
	"encoding/json"
	"reflect"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Printable makes foreign text safe for one line of a terminal: newlines and tabs become spaces;
// other control characters, characters that change the writing direction, and invalid UTF-8 become
// '?'.
func Printable(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return ' '
		case r == utf8.RuneError || !unicode.IsPrint(r):
			return '?'
		}
		return r
	}, text)
}

// clean makes all texts in an answer printable. It is called with a pointer to an API type.
func clean(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			clean(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Field(i); f.CanSet() {
				clean(f)
			}
		}
	case reflect.Slice:
		if raw, ok := v.Interface().(json.RawMessage); ok {
			v.SetBytes(cleanJSON(raw))
			return
		}
		for i := range v.Len() {
			clean(v.Index(i))
		}
	case reflect.Map:
		cleanMap(v)
	case reflect.Interface:
		if !v.IsNil() {
			inner := reflect.New(v.Elem().Type()).Elem()
			inner.Set(v.Elem())
			clean(inner)
			v.Set(inner)
		}
	case reflect.String:
		v.SetString(Printable(v.String()))
	}
}

func cleanMap(v reflect.Value) {
	for _, key := range v.MapKeys() {
		k, value := reflect.New(key.Type()).Elem(), reflect.New(v.Type().Elem()).Elem()
		k.Set(key)
		value.Set(v.MapIndex(key))
		clean(k)
		clean(value)
		v.SetMapIndex(key, reflect.Value{})
		v.SetMapIndex(k, value)
	}
}

// cleanJSON cleans JSON of any shape. Numbers stay as they were written.
func cleanJSON(raw json.RawMessage) json.RawMessage {
	var v any
	dec := json.NewDecoder(strings.NewReader(string(raw)))
	dec.UseNumber()
	if dec.Decode(&v) != nil {
		return raw
	}
	clean(reflect.ValueOf(&v))
	text, err := json.Marshal(v)
	if err != nil {
		return raw
	}
	return text
}
