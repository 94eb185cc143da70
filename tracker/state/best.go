package state

import (
	"strings"
	"unicode/utf8"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
)

// keepBest updates the best of a task's trials with one measurement. A best that is measured again and refuted leaves
// the task without one until the next verified measurement. In a batch of finalists the best is measured first, its
// rivals after it.
func keepBest(p *tilthv1.TaskProgress, m *tilthv1.Measurement) {
	best := bestOf(p)
	switch {
	case m.GetError() == tilthv1.ErrorClass_ERROR_CLASS_NONE:
		if records.Supersedes(m, best) {
			p.BestSeconds, p.BestTrace, p.Best = m.GetLatencySeconds(), m.GetCandidate().GetTrace(), Bare(m)
		}
	case best != nil && records.Disqualifies(m) && m.GetCandidate().GetDigest() == best.GetCandidate().GetDigest():
		p.BestSeconds, p.BestTrace, p.Best = 0, nil, nil
	}
}

// keepDefault records the latency of the task's default schedule, the baseline for the job's gain.
func keepDefault(p *tilthv1.TaskProgress, task *tilthv1.TaskSpec, m *tilthv1.Measurement) {
	if m.GetError() == tilthv1.ErrorClass_ERROR_CLASS_NONE && m.GetCandidate().GetDigest() == task.GetDefaultDigest() {
		p.DefaultSeconds = m.GetLatencySeconds()
	}
}

// bestOf returns the measurement of the best so far, or nil. Progress stored by versions that did not keep
// measurements has only the latency.
func bestOf(p *tilthv1.TaskProgress) *tilthv1.Measurement {
	if p.GetBest() != nil || p.GetBestSeconds() == 0 {
		return p.GetBest()
	}
	return &tilthv1.Measurement{
		Candidate:      &tilthv1.Candidate{Digest: records.Digest(p.GetBestTrace())},
		SamplesSeconds: []float64{p.GetBestSeconds()}, LatencySeconds: p.GetBestSeconds(),
	}
}

// Bare returns a copy of m without the fields that only builders and tuners read.
func Bare(m *tilthv1.Measurement) *tilthv1.Measurement {
	return &tilthv1.Measurement{
		Candidate: &tilthv1.Candidate{
			Digest: m.GetCandidate().GetDigest(), Trial: m.GetCandidate().GetTrial(), Numerics: m.GetCandidate().GetNumerics(),
			Multiplications: m.GetCandidate().GetMultiplications(), Algorithms: m.GetCandidate().GetAlgorithms(),
		},
		Error: m.GetError(), SamplesSeconds: m.GetSamplesSeconds(), LatencySeconds: m.GetLatencySeconds(), Interval: m.GetInterval(),
		CalibrationRatio: m.GetCalibrationRatio(), Device: m.GetDevice(), At: m.GetAt(), Remeasured: m.GetRemeasured(),
		EnergyJoules: m.GetEnergyJoules(), PreferredSeconds: m.GetPreferredSeconds(), PreferredTo: m.GetPreferredTo(),
	}
}

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
