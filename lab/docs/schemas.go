package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// schema is the used subset of JSON Schema.
type schema struct {
	Title       string          `json:"title"`
	Description string          `json:"description"`
	Type        any             `json:"type"`
	Properties  properties      `json:"properties"`
	Items       *schema         `json:"items"`
	Additional  json.RawMessage `json:"additionalProperties"`
}

// property is a field of an object.
type property struct {
	name string
	schema
}

// properties holds fields in their order in the schema.
type properties []property

func (p *properties) UnmarshalJSON(text []byte) error {
	d := json.NewDecoder(strings.NewReader(string(text)))
	if _, err := d.Token(); err != nil {
		return err
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return err
		}
		field := property{name: fmt.Sprint(name)}
		if err := d.Decode(&field.schema); err != nil {
			return err
		}
		*p = append(*p, field)
	}
	return nil
}

// schemasPage returns a page with a table of fields for each schema in a folder.
func schemasPage(folder string) (string, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err != nil || len(files) == 0 {
		return "", cmp.Or(err, fmt.Errorf("%s has no schemas", folder))
	}
	var out strings.Builder
	out.WriteString("# JSON of commands\n\nThe fields that each command prints with `--json`. [JSON for scripts](../api.md#output-of-commands) has the rules for\n" +
		"all of them. `[]` marks lists, `{}` mappings from names.\n")
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return "", err
		}
		var s schema
		if err := json.Unmarshal(text, &s); err != nil {
			return "", fmt.Errorf("%s: %w", file, err)
		}
		fmt.Fprintf(&out, "\n## %s\n\n", s.Title)
		if s.Description != "" {
			fmt.Fprintf(&out, "%s\n\n", escaped(s.Description))
		}
		fmt.Fprintf(&out, "[The schema](../schema/%s)\n\n| field | type | meaning |\n|---|---|---|\n", filepath.Base(file))
		s.rows(&out, "")
	}
	return out.String(), nil
}

// rows writes a row for each field of a schema, by path.
func (s schema) rows(out *strings.Builder, path string) {
	if s.Items != nil {
		s.Items.rows(out, path+"[]")
	}
	var values schema
	if len(s.Additional) > 0 && s.Additional[0] == '{' && json.Unmarshal(s.Additional, &values) == nil {
		values.rows(out, path+"{}")
	}
	for _, field := range s.Properties {
		at := strings.TrimPrefix(path+"."+field.name, ".")
		fmt.Fprintf(out, "| `%s` | %s | %s |\n", at, field.kind(), escaped(strings.ReplaceAll(field.Description, "\n", " ")))
		field.rows(out, at)
	}
}

// kind formats a schema's type.
func (s schema) kind() string {
	switch t := s.Type.(type) {
	case string:
		return t
	case []any:
		var kinds []string
		for _, k := range t {
			if k != "null" {
				kinds = append(kinds, fmt.Sprint(k))
			}
		}
		return strings.Join(kinds, " or ") + ", or null"
	}
	return "any"
}
