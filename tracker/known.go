package tracker

import (
	"strings"
	"unicode/utf8"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// maxMessageBytes bounds what a job keeps of a message; the record has it whole.
const maxMessageBytes = 500

// firstProgress is the progress of a job's tasks before it begins: what is recorded of their workloads already.
func (t *Tracker) firstProgress(spec *tilthv1.JobSpec) ([]*tilthv1.TaskProgress, error) {
	progress := make([]*tilthv1.TaskProgress, len(spec.GetTasks()))
	for i, task := range spec.GetTasks() {
		progress[i] = &tilthv1.TaskProgress{}
		if spec.GetNoTransfer() {
			continue
		}
		known, err := t.db.Known(spec.GetTarget().GetFingerprint(), task.GetWorkloadDigest(), knownNumerics(spec), task.GetDefaultDigest())
		if err != nil {
			return nil, storeError(err)
		}
		progress[i].KnownTrials = uint32(known.Trials)
		progress[i].KnownBestSeconds, progress[i].KnownDefaultSeconds = known.BestSeconds, known.CandidateSeconds
		progress[i].KnownBestDigest = known.BestDigest
	}
	return progress, nil
}

// knownNumerics is the level of a job; one from before there were levels is strict.
func knownNumerics(spec *tilthv1.JobSpec) string {
	if spec.GetNumerics() == "" {
		return "strict"
	}
	return spec.GetNumerics()
}

// fail counts a failure, and keeps the first message of its class.
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

// clip cuts text to a number of bytes, not within a character.
func clip(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return strings.TrimRight(text[:most], " ") + "…"
}
