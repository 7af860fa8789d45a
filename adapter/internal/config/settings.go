package config

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/spf13/viper"
)

// Settable lists the keys that operators may set at run time.
func Settable() []string {
	all := append(append([]string{"drain"}, BudgetKeys()...), PowerKeys()...)
	for _, kind := range Kinds {
		all = append(all, "allow."+kind, "deny."+kind)
	}
	return all
}

// BudgetKeys lists the keys that limit what is held.
func BudgetKeys() []string {
	all := []string{"max_delay", "max_delays", "max_holds"}
	for _, scope := range HoldScopes {
		for _, share := range []string{"reservations", "nodes", "node_hours"} {
			all = append(all, "hold_shares."+scope+"."+share)
		}
	}
	return all
}

// Text returns a key's value in the form that variables and With read, or "" if there is no such key.
func (c Config) Text(key string) string {
	switch v := c.values()[key].(type) {
	case nil:
		return ""
	case []string:
		return strings.Join(v, ",")
	case time.Duration:
		return v.String()
	default:
		return fmt.Sprint(v)
	}
}

// IsList reports whether a key's value is a list.
func (c Config) IsList(key string) bool { _, list := c.values()[key].([]string); return list }

// ListOf returns the elements of a list's text, or nil if there are none.
func ListOf(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, ",")
}

// With returns the configuration with another value for a settable key. The text has the form of a variable.
func (c Config) With(key, text string) (Config, error) {
	if !slices.Contains(Settable(), key) {
		return c, fmt.Errorf("%q is no key to set at run time; there are %s", key, strings.Join(Settable(), ", "))
	}
	v := viper.New()
	for k, value := range c.values() {
		v.SetDefault(k, value)
	}
	v.Set(key, text)
	with, err := decode(v)
	if err != nil {
		return c, err
	}
	return with, nil
}

// values returns all values by key.
func (c Config) values() map[string]any {
	values := make(map[string]any)
	var walk func(prefix string, v reflect.Value)
	walk = func(prefix string, v reflect.Value) {
		for i := range v.NumField() {
			key := prefix + v.Type().Field(i).Tag.Get("mapstructure")
			if f := v.Field(i); f.Kind() == reflect.Struct {
				walk(key+".", f)
			} else {
				values[key] = f.Interface()
			}
		}
	}
	walk("", reflect.ValueOf(c))
	return values
}
