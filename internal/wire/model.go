package wire

import tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"

// ModelFiles returns all files needed to read the models of a job: models first, in their order, then seeds.
func ModelFiles(m *tilthv1.ModelSpec) []*tilthv1.ArtifactRef {
	files := []*tilthv1.ArtifactRef{m.GetFile()}
	for _, o := range m.GetOthers() {
		files = append(files, o.GetFile())
	}
	for _, s := range m.GetSeeds() {
		files = append(files, s.GetFile())
	}
	return files
}
