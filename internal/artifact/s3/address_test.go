package s3_test

import (
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/internal/artifact/s3"
)

func TestAddressesAreRead(t *testing.T) {
	for text, want := range map[string][3]string{
		"s3://farm":              {"s3://farm/", "https://s3.amazonaws.com", ""},
		"s3://farm/a/b?region=x": {"s3://farm/a/b/", "https://s3.amazonaws.com", "x"},
		"s3://farm/?endpoint=http://127.0.0.1:9000": {"s3://farm/", "http://127.0.0.1:9000", ""},
		"s3://farm?endpoint=https%3A%2F%2Fminio%2F": {"s3://farm/", "https://minio/", ""},
	} {
		a, err := s3.ParseAddress(text)
		if err != nil {
			t.Error(err)
		} else if got := [3]string{a.String(), a.Endpoint.String(), a.Region}; got != want {
			t.Errorf("%s is read as %v", text, got)
		}
	}
}

func TestBadAddressesAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		"gs://farm":                            "want s3://BUCKET",
		"s3:///prefix":                         "want s3://BUCKET",
		"s3://farm?endpoint=minio:9000":        "endpoint is not https://HOST",
		"s3://farm?endpoint=https://h/path":    "has more than a host",
		"s3://farm?zone=a":                     `"zone" is not known`,
		"s3://farm?region=a&region=b":          "region comes 2 times",
		"s3://ana:hidden@farm":                 "has credentials",
		"s3://farm?secret_access_key=hidden":   "has credentials",
		"s3://farm?endpoint=http://a:hidden@h": "has credentials",
		"s3://farm\x7f?token=hidden":           "cannot be read",
	} {
		_, err := s3.ParseAddress(text)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hidden") {
			t.Errorf("%s: %v", text, err)
		}
	}
}
