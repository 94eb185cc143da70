package main

import (
	"bytes"
	"cmp"
	"crypto/sha1"
	"crypto/sha256"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	spdxjson "github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdx"
	"github.com/spdx/tools-golang/spdxlib"
)

const (
	sbomMain    = spdx.ElementID("Package-main")
	sbomNoClaim = "NOASSERTION"
)

// sbom returns the SPDX 2.3 bill of materials as JSON: the digests of programs, and the version, digest and licence of
// each module in them.
func (s *source) sbom(programs []program) ([]byte, error) {
	doc := &spdx.Document{
		SPDXVersion: spdx.Version, DataLicense: spdx.DataLicense, SPDXIdentifier: "DOCUMENT",
		DocumentName:      "tilth-" + s.version,
		DocumentNamespace: home + "/sbom/" + s.version + "/" + s.commit,
		CreationInfo: &spdx.CreationInfo{
			Creators: []spdx.Creator{{CreatorType: "Tool", Creator: "tilth-dist"}}, Created: s.when.UTC().Format(time.RFC3339),
		},
		Packages: []*spdx.Package{{
			PackageName: "tilth", PackageSPDXIdentifier: sbomMain, PackageVersion: s.version,
			PackageDownloadLocation: "git+" + home + "@" + s.commit, PackageHomePage: home,
			PackageLicenseConcluded: projectLicence, PackageLicenseDeclared: projectLicence, PackageCopyrightText: sbomNoClaim,
			PrimaryPackagePurpose: "APPLICATION",
		}},
		Relationships: []*spdx.Relationship{sbomRelation("DOCUMENT", "DESCRIBES", sbomMain)},
	}
	modules := map[spdx.ElementID]bool{}
	for i, p := range programs {
		id := spdx.ElementID(fmt.Sprintf("File-%d", i+1))
		doc.Files = append(doc.Files, s.sbomFile(id, p))
		doc.Relationships = append(doc.Relationships, sbomRelation(id, "GENERATED_FROM", sbomMain))
		for _, m := range p.modules {
			linked := sbomID(m)
			if !modules[linked] {
				modules[linked] = true
				doc.Packages = append(doc.Packages, sbomPackage(linked, m))
			}
			doc.Relationships = append(doc.Relationships, sbomRelation(id, "STATIC_LINK", linked))
		}
	}
	slices.SortStableFunc(doc.Packages[1:], func(a, b *spdx.Package) int {
		return cmp.Compare(a.PackageSPDXIdentifier, b.PackageSPDXIdentifier)
	})
	if err := spdxlib.ValidateDocument(doc); err != nil {
		return nil, fmt.Errorf("SBOM: %w", err)
	}
	var out bytes.Buffer
	if err := spdxjson.Write(doc, &out, spdxjson.Indent("  ")); err != nil {
		return nil, fmt.Errorf("SBOM: %w", err)
	}
	return out.Bytes(), nil
}

func sbomRelation(a spdx.ElementID, kind string, b spdx.ElementID) *spdx.Relationship {
	return &spdx.Relationship{
		RefA: spdx.DocElementID{ElementRefID: a}, Relationship: kind, RefB: spdx.DocElementID{ElementRefID: b},
	}
}

func (s *source) sbomFile(id spdx.ElementID, p program) *spdx.File {
	found := []string{projectLicence}
	for _, m := range p.modules {
		for one := range strings.SplitSeq(m.Licence, " AND ") {
			if !slices.Contains(found, one) {
				found = append(found, one)
			}
		}
	}
	slices.Sort(found)
	return &spdx.File{
		FileName: "./" + p.name(s.version) + "/tilth", FileSPDXIdentifier: id, FileTypes: []string{"BINARY"},
		Checksums: []spdx.Checksum{
			{Algorithm: spdx.SHA1, Value: fmt.Sprintf("%x", sha1.Sum(p.data))}, // SPDX 2.3 requires it
			{Algorithm: spdx.SHA256, Value: fmt.Sprintf("%x", sha256.Sum256(p.data))},
		},
		LicenseConcluded: strings.Join(found, " AND "), LicenseInfoInFiles: found, FileCopyrightText: sbomNoClaim,
	}
}

func sbomPackage(id spdx.ElementID, m module) *spdx.Package {
	p := &spdx.Package{
		PackageName: m.Path, PackageSPDXIdentifier: id, PackageVersion: m.Version,
		PackageLicenseConcluded: m.Licence, PackageLicenseDeclared: m.Licence, PackageCopyrightText: sbomNoClaim,
		PackageDownloadLocation: sbomNoClaim, // any proxy may serve it; the reference below and the digest identify it
		PackageExternalReferences: []*spdx.PackageExternalReference{{
			Category: "PACKAGE-MANAGER", RefType: "purl", Locator: "pkg:golang/" + m.Path + "@" + m.Version,
		}},
		PrimaryPackagePurpose: "LIBRARY",
	}
	if m.Path == standardLibrary {
		p.PackageDownloadLocation = "https://go.dev/dl/go" + m.Version + ".src.tar.gz"
	} else {
		p.PackageComment = "The digest in go.sum is " + m.Sum
	}
	return p
}

// notInSPDXID matches characters that SPDX identifiers must not contain.
var notInSPDXID = regexp.MustCompile(`[^A-Za-z0-9.-]+`)

func sbomID(m module) spdx.ElementID {
	return spdx.ElementID("Module-" + notInSPDXID.ReplaceAllString(m.Path+"-"+m.Version, "-"))
}
