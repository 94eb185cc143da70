package config

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
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

// maxFileBytes bounds a configuration file.
const maxFileBytes = 1 << 20

// values maps the keys of a file to their values.
type values map[string]value

type value struct {
	node  *yaml.Node
	where string // FILE:LINE
	line  int
}

// readFile reads a file. An empty path stands for a file without values.
func readFile(path string) (values, error) {
	if path == "" {
		return nil, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxFileBytes+1))
	if err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	if len(text) > maxFileBytes {
		return nil, fmt.Errorf("configuration %s: it has more than %d bytes", path, maxFileBytes)
	}
	return parse(path, text)
}

// yamlLine matches the position in the YAML library's errors.
var yamlLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?`)

func parse(path string, text []byte) (values, error) {
	d := yaml.NewDecoder(bytes.NewReader(text))
	var doc, next yaml.Node
	err := d.Decode(&doc)
	if errors.Is(err, io.EOF) {
		return nil, nil
	}
	if err == nil {
		if err = d.Decode(&next); err == nil {
			return nil, fmt.Errorf("%s:%d: another document begins: want one", path, next.Line)
		}
	}
	if !errors.Is(err, io.EOF) {
		where := path
		if m := yamlLine.FindStringSubmatch(err.Error()); m != nil && m[1] != "" {
			where += ":" + m[1]
		}
		return nil, fmt.Errorf("%s: %s", where, yamlLine.ReplaceAllString(err.Error(), ""))
	}
	return mapping(path, doc.Content[0])
}

func mapping(path string, root *yaml.Node) (values, error) {
	where := func(n *yaml.Node) string { return fmt.Sprintf("%s:%d", path, n.Line) }
	if root.Kind == yaml.ScalarNode && root.Tag == "!!null" {
		return nil, nil // only comments
	}
	if root.Kind != yaml.MappingNode {
		return nil, fmt.Errorf("%s: want keys and values, such as name: board-7", where(root))
	}
	out := values{}
	for i := 0; i < len(root.Content); i += 2 {
		key, node := root.Content[i], root.Content[i+1]
		if key.Kind != yaml.ScalarNode {
			return nil, fmt.Errorf("%s: a key is not a word", where(key))
		}
		if first, twice := out[key.Value]; twice {
			return nil, fmt.Errorf("%s: %s appears twice, first in line %d", where(key), key.Value, first.line)
		}
		out[key.Value] = value{node: node, where: where(key), line: key.Line}
	}
	return out, nil
}

// checkKeys rejects the first key that is not a setting.
func (v values) checkKeys(flags *pflag.FlagSet) error {
	var unknown []string
	for key := range v {
		if f := flags.Lookup(key); f == nil || !isSetting(f) {
			unknown = append(unknown, key)
		}
	}
	if len(unknown) == 0 {
		return nil
	}
	key := slices.MinFunc(unknown, func(a, b string) int { return v[a].line - v[b].line })
	var names []string
	flags.VisitAll(func(f *pflag.Flag) {
		if isSetting(f) {
			names = append(names, f.Name)
		}
	})
	hint := cmp.Or(humanize.DidYouMean("", key, names), ": keys are the command's flags, see --help-all")
	return fmt.Errorf("%s: unknown key %q%s", v[key].where, key, hint)
}

// set sets a flag to the value.
func (v value) set(f *pflag.Flag) error {
	switch v.node.Kind {
	case yaml.SequenceNode:
		return setList(f, v.node)
	case yaml.MappingNode:
		return setMap(f, v.node)
	case yaml.ScalarNode:
		if v.node.Tag == "!!null" {
			return errNoValue
		}
		if err := f.Value.Set(v.node.Value); err != nil {
			return InvalidValue(f, v.node.Value, err)
		}
		return nil
	}
	return errors.New("is an alias: write the value out")
}

func setList(f *pflag.Flag, node *yaml.Node) error {
	list, is := f.Value.(pflag.SliceValue)
	if !is {
		return errNoList
	}
	items, err := scalars(node.Content)
	if err != nil {
		return err
	}
	if err := list.Replace(items); err != nil {
		return InvalidValue(f, strings.Join(items, ", "), err)
	}
	return nil
}

func setMap(f *pflag.Flag, node *yaml.Node) error {
	if !isMap(f) {
		return errNoNames
	}
	items, err := scalars(node.Content)
	if err != nil {
		return err
	}
	if len(items) == 0 {
		return nil
	}
	var pairs []string
	for i := 0; i < len(items); i += 2 {
		pairs = append(pairs, items[i]+"="+items[i+1])
	}
	text := strings.Join(pairs, ",")
	if f.Value.Type() == "stringToString" { // the only type that supports quotes
		text = quoted(pairs)
	}
	if err := f.Value.Set(text); err != nil {
		return InvalidValue(f, strings.Join(pairs, ", "), err)
	}
	return nil
}

// isMap reports whether a flag takes names with values.
func isMap(f *pflag.Flag) bool { return strings.HasPrefix(f.Value.Type(), "stringTo") }

// quoted returns a CSV line.
func quoted(fields []string) string {
	var text strings.Builder
	w := csv.NewWriter(&text)
	_ = w.Write(fields) // a builder does not fail
	w.Flush()
	return strings.TrimSuffix(text.String(), "\n")
}

// scalars returns the texts of nodes, which must be scalars.
func scalars(nodes []*yaml.Node) (out []string, err error) {
	for _, n := range nodes {
		if n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
			return nil, fmt.Errorf("line %d: want a plain value", n.Line)
		}
		out = append(out, n.Value)
	}
	return out, nil
}
