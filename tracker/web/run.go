package web

import (
	"fmt"

	"github.com/tilth-dev/tilth/internal/stats"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// packageRow is a package that a job ran.
type packageRow struct {
	Name, Digest string
	Samples      int
	Seconds      float64 // median per execution; 0 if not timed
	// Against compares it with the first package, if several were timed in turns.
	Against string
}

// packagesOf returns the packages that a job ran.
func packagesOf(j *tilthv1.Job) (out []packageRow) {
	results := j.GetResult().GetPackages()
	for i, p := range j.GetSpec().GetRun().GetPackages() {
		row := packageRow{Name: p.GetName(), Digest: p.GetArtifact().GetDigest()}
		if i < len(results) {
			samples := results[i].GetSamplesSeconds()
			row.Samples, row.Seconds = len(samples), stats.Of(samples).Median
			if i > 0 && len(samples) > 0 {
				ratio := stats.PairedRatio(results[0].GetSamplesSeconds(), samples)
				row.Against = fmt.Sprintf("%.2fx (%.2f–%.2f): %s", ratio.Ratio, ratio.Low, ratio.High, ratio.Verdict())
			}
		}
		out = append(out, row)
	}
	return out
}
