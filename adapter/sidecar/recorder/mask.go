package recorder

import (
	"errors"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"strings"

	"github.com/evoslurm/evoslurm/slurmctl"
)

// Mask replaces users' names and paths, each with the same word everywhere: user1, user2 …, /path1,
// /path2 …. It must see everything (Learn) before it replaces anything.
type Mask struct {
	users, paths map[string]string
	words        *regexp.Regexp // the users that are known
}

// NewMask returns a mask that knows of some users.
func NewMask(users ...string) *Mask {
	m := &Mask{users: map[string]string{}, paths: map[string]string{}}
	for _, u := range users {
		m.user(u)
	}
	return m
}

func (m *Mask) user(name string) {
	if name == "" || name == "root" || m.users[name] != "" {
		return
	}
	m.users[name], m.words = fmt.Sprintf("user%d", len(m.users)+1), nil
}

var pathWord = regexp.MustCompile(`/[\w.+@%~-]+(/[\w.+@%~-]*)+`)

// Text returns a text without names.
func (m *Mask) Text(s string) string {
	if m.words == nil {
		var names []string
		for name := range m.users { // in any order: whole words only
			names = append(names, regexp.QuoteMeta(name))
		}
		m.words = regexp.MustCompile(`\b(` + strings.Join(names, "|") + `)\b`)
		if len(names) == 0 {
			m.words = regexp.MustCompile(`$^`)
		}
	}
	s = pathWord.ReplaceAllStringFunc(s, func(path string) string {
		if m.paths[path] == "" {
			m.paths[path] = fmt.Sprintf("/path%d", len(m.paths)+1)
		}
		return m.paths[path]
	})
	return m.words.ReplaceAllStringFunc(s, func(name string) string { return m.users[name] })
}

// learn finds the names of users in a value.
func (m *Mask) learn(v reflect.Value) {
	switch v.Kind() {
	case reflect.Interface, reflect.Pointer:
		if !v.IsNil() {
			m.learn(v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			m.learn(v.Index(i))
		}
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[slurmctl.User]() {
			m.user(v.FieldByName("Name").String())
		}
		for i := range v.NumField() {
			f := v.Field(i)
			switch name := v.Type().Field(i).Name; {
			case name == "User" && f.Kind() == reflect.String:
				m.user(f.String())
			case (name == "Users" || name == "LetIn") && f.Type() == reflect.TypeFor[[]string]():
				for k := range f.Len() {
					m.user(f.Index(k).String())
				}
			default:
				m.learn(f)
			}
		}
	}
}

// masked returns a copy of a value without names.
func (m *Mask) masked(v reflect.Value) reflect.Value {
	to := reflect.New(v.Type()).Elem()
	to.Set(v)
	switch v.Kind() {
	case reflect.String:
		to.SetString(m.Text(v.String()))
	case reflect.Interface:
		if v.IsNil() {
			break
		}
		if r, ok := v.Interface().(*recorded); ok {
			to.Set(reflect.ValueOf(m.err(r)))
			break
		}
		to.Set(m.masked(v.Elem()))
	case reflect.Pointer:
		if !v.IsNil() && v.Type() != problemType {
			to.Set(reflect.New(v.Type().Elem()))
			to.Elem().Set(m.masked(v.Elem()))
		}
	case reflect.Slice:
		if v.IsNil() {
			break
		}
		to.Set(reflect.MakeSlice(v.Type(), v.Len(), v.Len()))
		for i := range v.Len() {
			to.Index(i).Set(m.masked(v.Index(i)))
		}
	case reflect.Map:
		if v.IsNil() {
			break
		}
		to.Set(reflect.MakeMap(v.Type()))
		for it := v.MapRange(); it.Next(); {
			to.SetMapIndex(m.masked(it.Key()), m.masked(it.Value()))
		}
	case reflect.Struct:
		if v.Type() == timeType {
			break
		}
		for i := range to.NumField() {
			f := field(to, i)
			f.Set(m.masked(f))
		}
	}
	return to
}

func (m *Mask) err(r *recorded) *recorded {
	c := *r
	c.text = m.Text(r.text)
	c.parts = nil
	for _, part := range r.parts {
		switch p := part.(type) { //nolint:errorlint // parts are what they are
		case *slurmctl.PendingError:
			q := *p
			q.Reason, q.Err = m.Text(p.Reason), m.cause(p.Err)
			c.parts = append(c.parts, &q)
		case *slurmctl.CommandError:
			q := *p
			q.Args = m.masked(reflect.ValueOf(p.Args)).Interface().([]string)
			q.Stderr, q.Err = m.Text(p.Stderr), m.cause(p.Err)
			c.parts = append(c.parts, &q)
		}
	}
	return &c
}

func (m *Mask) cause(err error) error {
	if err == nil {
		return nil
	}
	return errors.New(m.Text(err.Error()))
}

// Learn finds whose names are in a file.
func (m *Mask) Learn(r io.Reader, version string) error {
	return each(r, version, nil, func(s *Step) error {
		m.learn(reflect.ValueOf(s).Elem())
		return nil
	})
}

// Rewrite writes a file again without names. From a truncated file, it writes the complete part.
func (m *Mask) Rewrite(w io.Writer, r io.Reader, version string) error {
	var seg segment
	err := each(r, version, func(start Start) error {
		start.State = "" // it is full of names
		return seg.begin(w, version, m.masked(reflect.ValueOf(start)).Interface().(Start))
	}, func(s *Step) error {
		c := m.masked(reflect.ValueOf(*s)).Interface().(Step)
		seg.enc.time(c.At)
		seg.enc.value(reflect.ValueOf(c.Inputs))
		seg.enc.value(reflect.ValueOf(c.Effects))
		if len(seg.enc.b) < blockSize {
			return nil
		}
		return seg.flush()
	})
	return errors.Join(err, seg.flush())
}

// each returns all that is whole of a file.
func each(r io.Reader, version string, begin func(Start) error, see func(*Step) error) error {
	f, err := NewReader(r, version)
	if err != nil {
		return err
	}
	if begin != nil {
		if err := begin(f.Start); err != nil {
			return err
		}
	}
	for {
		s, err := f.Next()
		if errors.Is(err, io.EOF) || errors.Is(err, ErrCut) {
			return nil
		}
		if err == nil {
			err = see(&s)
		}
		if err != nil {
			return err
		}
	}
}
