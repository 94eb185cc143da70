package records_test

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
)

func TestTextThatIsCutSaysSo(t *testing.T) {
	for _, text := range []string{"", "short", strings.Repeat("x", 100), strings.Repeat("x", 101), strings.Repeat("é", 100), strings.Repeat("x ", 1000)} {
		got := records.Cut(text, 100)
		if len(got) > 100 || !utf8.ValidString(got) || len(text) <= 100 && got != text || len(text) > 100 && !strings.Contains(got, "(cut, it had ") {
			t.Errorf("%d bytes are cut to %q", len(text), got)
		}
	}
}

// TestExportLeavesOutWhatNobodyCanImport is a regression test: one exported record that no import accepts made its
// file useless.
func TestExportLeavesOutWhatNobodyCanImport(t *testing.T) {
	var out bytes.Buffer
	var leftOut []string
	small := &tilthv1.Record{Target: "cpu", WorkloadDigest: "w", Measurement: &tilthv1.Measurement{Message: "kept"}}
	large := &tilthv1.Record{Target: "cpu", WorkloadDigest: "w", Measurement: &tilthv1.Measurement{
		Candidate: &tilthv1.Candidate{Digest: "named", Trace: make([]byte, records.MaxRecordBytes)},
	}}
	n, err := records.Export(&out, func(visit func(*tilthv1.Record) error) error {
		for _, r := range []*tilthv1.Record{small, large, small} {
			if err := visit(r); err != nil {
				return err
			}
		}
		return nil
	}, func(why error) { leftOut = append(leftOut, why.Error()) })
	if err != nil || n != 2 || strings.Count(out.String(), "\n") != 4 {
		t.Errorf("%d records are exported in %d lines, %v", n, strings.Count(out.String(), "\n"), err)
	}
	if len(leftOut) != 1 || !strings.Contains(leftOut[0], `record of candidate "named" of workload "w" has 33`) {
		t.Errorf("said is %q", leftOut)
	}
}
