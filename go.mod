module github.com/tilth-dev/tilth

go 1.26
