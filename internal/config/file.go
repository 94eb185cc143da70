package config

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"

	"github.com/tilth-dev/tilth/internal/humanize"
)

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
