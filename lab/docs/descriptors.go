package main

import (
	"iter"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// all iterates over a list of descriptors.
func all[D any](list interface {
	Len() int
	Get(int) D
}) iter.Seq[D] {
	return func(yield func(D) bool) {
		for i := range list.Len() {
			if !yield(list.Get(i)) {
				return
			}
		}
	}
}

// nested returns all messages and enums in a file or message, without synthetic map entries.
func nested(within interface {
	Messages() protoreflect.MessageDescriptors
	Enums() protoreflect.EnumDescriptors
}) (types []protoreflect.Descriptor) {
	for e := range all(within.Enums()) {
		types = append(types, e)
	}
	for m := range all(within.Messages()) {
		if !m.IsMapEntry() {
			types = append(append(types, m), nested(m)...)
		}
	}
	return types
}

// titleOf returns a type's name, prefixed by its enclosing messages with hyphens.
func titleOf(d protoreflect.Descriptor) string {
	name := strings.TrimPrefix(string(d.FullName()), string(d.ParentFile().Package())+".")
	return strings.ReplaceAll(name, ".", "-")
}

// comment returns the leading or trailing comment of a declaration as a paragraph.
func comment(d protoreflect.Descriptor) string {
	at := d.ParentFile().SourceLocations().ByDescriptor(d)
	text := strings.TrimSpace(at.LeadingComments)
	if text == "" {
		text = strings.TrimSpace(at.TrailingComments)
	}
	if text == "" {
		return ""
	}
	return running(strings.ReplaceAll(text, "\n ", "\n"))
}

// inLine joins paragraphs into one line, for a table cell.
func inLine(text string) string { return strings.Join(strings.Fields(text), " ") }
