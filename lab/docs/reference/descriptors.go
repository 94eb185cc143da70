package main

import (
	"iter"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// all goes through a list of descriptors.
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

// nested are all messages and enums within a file or a message, without those that are made for maps.
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

// titleOf is a type's name, behind those of the messages that it is in, with a hyphen between.
func titleOf(d protoreflect.Descriptor) string {
	name := strings.TrimPrefix(string(d.FullName()), string(d.ParentFile().Package())+".")
	return strings.ReplaceAll(name, ".", "-")
}

// comment is what stands before a declaration, or behind it in its line, as a paragraph.
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

// inLine is paragraphs as one line, for a cell of a table.
func inLine(text string) string { return strings.Join(strings.Fields(text), " ") }
