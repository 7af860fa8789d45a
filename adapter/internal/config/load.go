package config

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/go-viper/mapstructure/v2"
	"github.com/spf13/pflag"
	"github.com/spf13/viper"

	"github.com/evoslurm/evoslurm/planner"
)

const envPrefix = "EVOSLURM"

// AddFlag adds --config, the file to read.
func AddFlag(flags *pflag.FlagSet) {
	flags.String("config", "", "configuration file (default $EVOSLURM_CONFIG, else "+DefaultFile+")")
}

// KeyOf annotates a flag that sets a key of another name.
const KeyOf = "key"

// Load reads the configuration: defaults, file, variables, and the given flags that have a key's
// name or KeyOf (nil for no flags). It also returns the file that was read, or "".
func Load(flags *pflag.FlagSet) (Config, string, error) {
	v := viper.New()
	v.SetEnvPrefix(envPrefix)
	v.SetEnvKeyReplacer(strings.NewReplacer(".", "_"))
	v.AutomaticEnv()
	known := Default().values()
	for key, value := range known {
		v.SetDefault(key, value)
	}
	if err := bind(v, flags, known); err != nil {
		return Config{}, "", err
	}
	file, err := readFile(v, flags, known)
	if err != nil {
		return Config{}, "", err
	}
	c, err := decode(v)
	if err != nil {
		where := "configuration"
		if file != "" {
			where = file
		}
		return Config{}, "", fmt.Errorf("%s: %w", where, err)
	}
	return c, file, nil
}

// bind lets flags set their keys.
func bind(v *viper.Viper, flags *pflag.FlagSet, known map[string]any) (err error) {
	if flags == nil {
		return nil
	}
	keys := map[string]string{} // by flag
	for key := range known {
		keys[strings.NewReplacer(".", "-", "_", "-").Replace(key)] = key
	}
	flags.VisitAll(func(f *pflag.Flag) {
		key := keys[f.Name]
		if of := f.Annotations[KeyOf]; len(of) > 0 {
			key = of[0]
		}
		if key != "" {
			err = errors.Join(err, v.BindPFlag(key, f))
		}
	})
	return err
}

// decode returns the values as a configuration, or what is wrong with them.
func decode(v *viper.Viper) (c Config, err error) {
	err = v.Unmarshal(&c, viper.DecodeHook(mapstructure.ComposeDecodeHookFunc(
		expandLimitHook,
		durationHook,
		mapstructure.StringToSliceHookFunc(","),
	)))
	if bad, ok := errors.AsType[*mapstructure.DecodeError](err); ok { // the first one, on a line
		err = fmt.Errorf("%s: %w", bad.Name(), bad.Unwrap())
		if value, ok := errors.AsType[*mapstructure.ParseError](err); ok {
			err = fmt.Errorf("%s: %q; want one of type %s", bad.Name(), fmt.Sprint(value.Value), value.Expected.Type())
		}
	}
	if err == nil {
		err = c.Validate()
	}
	return c, err
}

// readFile reads the file that applies into v, and refuses keys that do not exist.
func readFile(v *viper.Viper, flags *pflag.FlagSet, known map[string]any) (string, error) {
	file, named := fileName(flags)
	err := mergeFile(v, file, known)
	if !named && errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return file, err
}

// mergeFile reads a file into v, and refuses keys that do not exist.
func mergeFile(v *viper.Viper, file string, known map[string]any) error {
	f, err := os.Open(file)
	if err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	defer f.Close()
	own := viper.New()
	own.SetConfigType("yaml")
	if err := own.ReadConfig(f); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	var unknown []string
	for _, key := range own.AllKeys() {
		if _, ok := known[key]; ok || own.Get(key) == nil && isSection(key, known) {
			continue
		}
		if now, ok := renamed[key]; ok {
			key += " (now " + now + ")"
		} else if section, _, _ := strings.Cut(key, "."); replaced[section] != "" {
			key += " (replaced by " + replaced[section] + ")"
		}
		unknown = append(unknown, key)
	}
	if len(unknown) > 0 {
		slices.Sort(unknown)
		return fmt.Errorf("%s: unknown keys: %s", file, strings.Join(unknown, ", "))
	}
	if err := v.MergeConfigMap(own.AllSettings()); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return nil
}

// renamed are keys of before.
var renamed = map[string]string{"read_only_open": "read: slurm, everybody or own"}

// replaced names sections of before, and what to set instead.
var replaced = map[string]string{
	"held_nodes": "hold_shares.job.nodes and so on: percent of the partition's nodes",
	"held_time":  "hold_shares.job.node_hours and so on: percent of the partition's nodes times hold_ahead",
}

// isSection reports whether the key holds others; "log:" with nothing below it is empty and valid.
func isSection(key string, known map[string]any) bool {
	for k := range known {
		if strings.HasPrefix(k, key+".") {
			return true
		}
	}
	return false
}

// fileName returns the file to read, and whether the user named it.
func fileName(flags *pflag.FlagSet) (string, bool) {
	if flags != nil {
		if name, err := flags.GetString("config"); err == nil && name != "" {
			return name, true
		}
	}
	if name := os.Getenv(envPrefix + "_CONFIG"); name != "" {
		return name, true
	}
	return DefaultFile, false
}

// expandLimitHook reads an expand limit from text ("inf") or a number.
func expandLimitHook(from, to reflect.Type, data any) (any, error) {
	if to != reflect.TypeFor[planner.ExpandLimit]() || from == to {
		return data, nil
	}
	if f, ok := data.(float64); ok && math.IsInf(f, 1) { // YAML's .inf
		return planner.Infinite, nil
	}
	return planner.ParseExpandLimit(fmt.Sprint(data))
}

// durationHook reads a duration from text; a bare number has no unit and is refused.
func durationHook(from, to reflect.Type, data any) (any, error) {
	if to != reflect.TypeFor[time.Duration]() || from == to {
		return data, nil
	}
	text := fmt.Sprint(data)
	d, err := time.ParseDuration(text)
	if err != nil {
		return nil, fmt.Errorf("%q; want a length of time with its unit, such as 500ms, 30s, 5m or 2h", text)
	}
	return d, nil
}
