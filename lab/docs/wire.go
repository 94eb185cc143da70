package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bufbuild/protocompile"
	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// folder is the path of the protocol's files in proto/.
const folder = "tilth/v1"

// wire holds the protocol's files, and the HTTP paths of methods available as JSON.
type wire struct {
	files []protoreflect.FileDescriptor
	http  map[protoreflect.FullName]string
}

// wirePage documents the protocol from its comments.
func wirePage(ctx context.Context, root string) (string, error) {
	w, err := readWire(ctx, root)
	if err != nil {
		return "", err
	}
	var out strings.Builder
	out.WriteString("# gRPC\n\nThe protocol `tilth.v1`, by which clients and agents call a tracker; agents do not call each other. " +
		"[Security](../security.md#authorisation)\nsays who may call what, and [Calls in JSON](../api.md) how scripts make the same calls over HTTP.\n")
	for _, f := range w.files {
		for s := range all(f.Services()) {
			w.service(&out, s)
		}
	}
	out.WriteString("\n## Messages\n\n")
	var types []protoreflect.Descriptor
	for _, f := range w.files {
		types = append(types, nested(f)...)
	}
	slices.SortFunc(types, func(a, b protoreflect.Descriptor) int { return cmp.Compare(titleOf(a), titleOf(b)) })
	for _, t := range types {
		describe(&out, t)
	}
	return out.String(), nil
}

func readWire(ctx context.Context, root string) (w wire, err error) {
	names, err := filepath.Glob(filepath.Join(root, "proto", folder, "*.proto"))
	if err != nil || len(names) == 0 {
		return w, cmp.Or(err, fmt.Errorf("%s has no proto/%s", root, folder))
	}
	for i, name := range names {
		names[i] = folder + "/" + filepath.Base(name)
	}
	compiler := protocompile.Compiler{
		Resolver:       protocompile.WithStandardImports(&protocompile.SourceResolver{ImportPaths: []string{filepath.Join(root, "proto")}}),
		SourceInfoMode: protocompile.SourceInfoStandard,
	}
	files, err := compiler.Compile(ctx, names...)
	if err != nil {
		return w, err
	}
	for _, f := range files {
		w.files = append(w.files, f)
	}
	w.http, err = readHTTP(filepath.Join(root, "proto", "http.yaml"))
	return w, err
}

// readHTTP reads the HTTP paths of methods.
func readHTTP(file string) (map[protoreflect.FullName]string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var config struct {
		HTTP struct {
			Rules []map[string]string `yaml:"rules"`
		} `yaml:"http"`
	}
	if err := yaml.Unmarshal(text, &config); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	calls := map[protoreflect.FullName]string{}
	for _, rule := range config.HTTP.Rules {
		for _, verb := range []string{"get", "post", "delete"} {
			if path := rule[verb]; path != "" {
				calls[protoreflect.FullName(rule["selector"])] = strings.ToUpper(verb) + " " + strings.ReplaceAll(path, "=**", "")
			}
		}
	}
	return calls, nil
}

func (w wire) service(out *strings.Builder, s protoreflect.ServiceDescriptor) {
	fmt.Fprintf(out, "\n## %s\n\n%s", s.Name(), comment(s))
	for m := range all(s.Methods()) {
		stream := func(is bool) string {
			if is {
				return "stream of "
			}
			return ""
		}
		fmt.Fprintf(out, "\n### %s\n\n%s- request: %s%s\n- answer: %s%s\n", m.Name(), comment(m),
			stream(m.IsStreamingClient()), reference(m.Input()), stream(m.IsStreamingServer()), reference(m.Output()))
		fmt.Fprintf(out, "- roles: %s\n", strings.Join(roles(m), ", "))
		if call := w.http[m.FullName()]; call != "" {
			fmt.Fprintf(out, "- in JSON: `%s`\n", call)
		}
	}
}

// roles returns the roles that may call a method, from its option "call".
func roles(m protoreflect.MethodDescriptor) (names []string) {
	m.Options().ProtoReflect().Range(func(option protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		if option.FullName() != "tilth.v1.call" {
			return true
		}
		field := option.Message().Fields().ByName("roles")
		for i := range v.Message().Get(field).List().Len() {
			role := field.Enum().Values().ByNumber(v.Message().Get(field).List().Get(i).Enum())
			name := strings.TrimPrefix(string(role.Name()), "ROLE_")
			names = append(names, strings.ReplaceAll(strings.ToLower(name), "_", "-"))
		}
		return true
	})
	return names
}

// describe writes the fields of a message or the values of an enum.
func describe(out *strings.Builder, d protoreflect.Descriptor) {
	fmt.Fprintf(out, "\n### %s\n\n%s", titleOf(d), comment(d))
	switch t := d.(type) {
	case protoreflect.MessageDescriptor:
		if t.Fields().Len() == 0 {
			return
		}
		out.WriteString("| field | type | number | meaning |\n|---|---|---|---|\n")
		for f := range all(t.Fields()) {
			fmt.Fprintf(out, "| `%s` | %s | %d | %s |\n", f.Name(), kindOf(f), f.Number(), inLine(comment(f)))
		}
	case protoreflect.EnumDescriptor:
		out.WriteString("| value | number | meaning |\n|---|---|---|\n")
		for v := range all(t.Values()) {
			fmt.Fprintf(out, "| `%s` | %d | %s |\n", v.Name(), v.Number(), inLine(comment(v)))
		}
	}
}

// kindOf formats a field's type, with links to the protocol's types.
func kindOf(f protoreflect.FieldDescriptor) string {
	if f.IsMap() {
		return fmt.Sprintf("map of %s to %s", f.MapKey().Kind(), kindOf(f.MapValue()))
	}
	kind := f.Kind().String()
	switch {
	case f.Message() != nil:
		kind = reference(f.Message())
	case f.Enum() != nil:
		kind = reference(f.Enum())
	}
	if f.IsList() {
		kind = "list of " + kind
	}
	if o := f.ContainingOneof(); o != nil && !o.IsSynthetic() {
		kind += fmt.Sprintf(", one of `%s`", o.Name())
	}
	return kind
}

// reference returns a link to a type of the protocol, or the name of another type.
func reference(d protoreflect.Descriptor) string {
	if d.ParentFile().Package() != "tilth.v1" {
		return string(d.FullName())
	}
	return fmt.Sprintf("[%s](#%s)", titleOf(d), strings.ToLower(titleOf(d)))
}
