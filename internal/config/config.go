package config

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"

	"github.com/tilth-dev/tilth/internal/humanize"
)

// Flags of this package, which are not settings.
const (
	FileFlag  = "config"
	CheckFlag = "config-check"
)

// Setting is a flag's value and its source.
type Setting struct {
	Flag *pflag.Flag
	// Source is "default", "flag", the variable's name, or FILE:LINE.
	Source string
}

// Variable returns the environment variable of a flag, such as TILTH_TLS_CERT for tls-cert.
func Variable(flag string) string {
	return "TILTH_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// Apply sets the flags missing on the command line and returns all settings by name. lookup reads the environment; an
// empty variable counts as unset. The configuration file is optional and named by the flag FileFlag or its variable.
func Apply(flags *pflag.FlagSet, lookup func(string) (string, bool)) ([]Setting, error) {
	path := ""
	if f := flags.Lookup(FileFlag); f != nil {
		if path = f.Value.String(); !f.Changed {
			path, _ = lookup(Variable(FileFlag))
		}
	}
	values, err := readFile(path)
	if err != nil {
		return nil, err
	}
	if err := values.checkKeys(flags); err != nil {
		return nil, err
	}
	var settings []Setting
	var failure error
	flags.VisitAll(func(f *pflag.Flag) {
		if !isSetting(f) || failure != nil {
			return
		}
		var source string
		source, failure = set(f, values, lookup)
		settings = append(settings, Setting{Flag: f, Source: source})
	})
	return settings, failure
}

// Environment sets the named flags missing on the command line from their variables.
func Environment(flags *pflag.FlagSet, lookup func(string) (string, bool), names ...string) error {
	for _, name := range names {
		f := flags.Lookup(name)
		if f == nil {
			continue
		}
		if _, err := set(f, nil, lookup); err != nil {
			return err
		}
	}
	return nil
}

// isSetting reports whether a flag can be set by file or environment.
func isSetting(f *pflag.Flag) bool {
	return !slices.Contains([]string{FileFlag, CheckFlag, "help", "help-all", "version"}, f.Name)
}

// set sets a flag from its strongest source.
func set(f *pflag.Flag, values values, lookup func(string) (string, bool)) (source string, err error) {
	if f.Changed {
		return "flag", nil
	}
	if text, _ := lookup(Variable(f.Name)); text != "" {
		if err := f.Value.Set(text); err != nil {
			return "", fmt.Errorf("%s: %w", Variable(f.Name), InvalidValue(f, text, err))
		}
		f.Changed = true
		return Variable(f.Name), nil
	}
	v, is := values[f.Name]
	if !is {
		return "default", nil
	}
	if err := v.set(f); err != nil {
		return "", fmt.Errorf("%s: %s: %w", v.where, f.Name, err)
	}
	f.Changed = true
	return v.where, nil
}

// wants describes the values of flags by type, for texts that are no such values at all.
var wants = map[string]string{
	"bool": "true or false", "int": "a whole number", "int64": "a whole number", "intSlice": "a whole number", "uint32": "a whole number >= 0",
	"uint64": "a whole number >= 0", "float64": "a number", "stringToString": "names and values, such as rack: 3",
	"stringToInt": "names and whole numbers, such as ci: 50", "stringToInt64": "names and whole numbers, such as ci: 50",
}

// InvalidValue describes what a flag expects instead of a rejected text.
func InvalidValue(f *pflag.Flag, text string, cause error) error {
	kind := f.Value.Type()
	if want := wants[kind]; want != "" && (errors.As(cause, new(*strconv.NumError)) || strings.HasPrefix(kind, "stringTo")) {
		return fmt.Errorf("%.100q: want %s", text, want)
	}
	if kind == "duration" && strings.HasPrefix(cause.Error(), "time: ") {
		cause = humanize.ErrDuration
	}
	return fmt.Errorf("%.100q: %w", text, cause)
}

// Errors for values of the wrong shape.
var (
	errNoList  = errors.New("is a list: want one value")
	errNoNames = errors.New("is a map: want one value")
	errNoValue = errors.New("has no value: give one, \"\" for an empty one, or leave the key out")
)

// Write writes settings as a configuration file, with the source of each value as a comment.
func Write(w io.Writer, settings []Setting) error {
	doc := &yaml.Node{Kind: yaml.MappingNode}
	for _, s := range settings {
		node, err := encode(s.Flag)
		if err != nil {
			return err
		}
		key := &yaml.Node{Kind: yaml.ScalarNode, Value: s.Flag.Name}
		if node.Kind == yaml.ScalarNode || len(node.Content) == 0 {
			node.LineComment = s.Source
		} else {
			key.LineComment = s.Source
		}
		doc.Content = append(doc.Content, key, node)
	}
	e := yaml.NewEncoder(w)
	e.SetIndent(2)
	if err := e.Encode(doc); err != nil {
		return err
	}
	return e.Close()
}

// encode returns a flag's value as in a file.
func encode(f *pflag.Flag) (*yaml.Node, error) {
	if list, is := f.Value.(pflag.SliceValue); is {
		node := &yaml.Node{Kind: yaml.SequenceNode}
		if len(list.GetSlice()) == 0 {
			node.Style = yaml.FlowStyle
		}
		tag := "!!str"
		if f.Value.Type() == "intSlice" {
			tag = ""
		}
		for _, item := range list.GetSlice() {
			node.Content = append(node.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: item})
		}
		return node, nil
	}
	if isMap(f) {
		return encodeMap(f)
	}
	switch f.Value.Type() {
	case "bool", "int", "int64", "uint32", "uint64", "float64":
		return &yaml.Node{Kind: yaml.ScalarNode, Value: f.Value.String()}, nil
	}
	return text(f.Value.String()), nil
}

// encodeMap parses the flag's own notation: [a=1,b=2], as CSV.
func encodeMap(f *pflag.Flag) (*yaml.Node, error) {
	node := &yaml.Node{Kind: yaml.MappingNode}
	inner := strings.TrimSuffix(strings.TrimPrefix(f.Value.String(), "["), "]")
	if inner == "" {
		node.Style = yaml.FlowStyle
		return node, nil
	}
	pairs, err := csv.NewReader(strings.NewReader(inner)).Read()
	if err != nil {
		return nil, err
	}
	all := map[string]string{}
	for _, pair := range pairs {
		name, value, _ := strings.Cut(pair, "=")
		all[name] = value
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		value := text(all[name])
		if f.Value.Type() != "stringToString" {
			value.Tag = "" // a number
		}
		node.Content = append(node.Content, text(name), value)
	}
	return node, nil
}

// text returns a string node, which is quoted if necessary.
func text(s string) *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s} }
