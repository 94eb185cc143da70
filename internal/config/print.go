package config

import (
	"encoding/csv"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"
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
