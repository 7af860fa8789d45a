package recorder

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"

	"github.com/evoslurm/evoslurm/adapter/sidecar/codec"
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

// Learn finds whose names are in a file.
func (m *Mask) Learn(r io.Reader, version string) error {
	return each(r, version, nil, func(s *Step) error {
		m.learn(reflect.ValueOf(s).Elem())
		return nil
	})
}

// Rewrite writes a file again without names. From a truncated file, it writes the complete part.
func (m *Mask) Rewrite(w io.Writer, r io.Reader, version string) error {
	seg := segment{rewrite: m.Text}
	err := each(r, version, func(start Start) error {
		start.State = "" // it is full of names
		return seg.begin(w, version, start)
	}, func(s *Step) error {
		codec.Write(seg.enc, s)
		if len(seg.enc.B) < blockSize {
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
		if errors.Is(err, io.EOF) || errors.Is(err, codec.ErrCut) {
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

// Names replaces single names by words that depend on a key: the same name becomes the same word in every file that
// is written with that key, and no memory is needed. Nil replaces nothing.
type Names struct{ key []byte }

// LoadNames returns the names of the key in a file. It makes the file if there is none.
func LoadNames(file string) (*Names, error) {
	key, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		key = make([]byte, sha256.Size)
		_, _ = rand.Read(key) // never fails
		if err = os.MkdirAll(filepath.Dir(file), 0o700); err == nil {
			err = os.WriteFile(file, key, 0o600)
		}
	}
	if err == nil && len(key) < sha256.Size {
		err = errors.New("too short: remove it, and names get other words from then on")
	}
	if err != nil {
		return nil, fmt.Errorf("key of masked names: %w", err)
	}
	return &Names{key}, nil
}

// Word returns the word for a name of some kind, such as user. Root stays, as in [Mask].
func (n *Names) Word(kind, name string) string {
	if n == nil || name == "" || name == "root" {
		return name
	}
	h := hmac.New(sha256.New, n.key)
	h.Write([]byte(kind + "\x00" + name))
	return kind + "-" + hex.EncodeToString(h.Sum(nil)[:5])
}
