package state

import (
	"strings"
	"unicode/utf8"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// maxMessageBytes bounds a message kept with a job; the record has it in full.
const maxMessageBytes = 500

// fail counts a failed trial and keeps the first message of each error class.
func fail(p *tilthv1.TaskProgress, m *tilthv1.Measurement) {
	class := m.GetError().String()
	if p.Errors == nil {
		p.Errors = map[string]uint32{}
	}
	p.Errors[class]++
	if p.Errors[class] > 1 {
		return
	}
	if p.Messages == nil {
		p.Messages = map[string]string{}
	}
	p.Messages[class] = clip(m.GetMessage(), maxMessageBytes)
}

// clip truncates text to at most limit bytes, without splitting a character, and marks the cut with an ellipsis.
func clip(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	for limit > 0 && !utf8.RuneStart(text[limit]) {
		limit--
	}
	return strings.TrimRight(text[:limit], " ") + "…"
}
