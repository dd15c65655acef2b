module github.com/otel-governor/otel-governor/benchmarks

go 1.26.0

replace github.com/otel-governor/otel-governor => ../

require (
	github.com/otel-governor/otel-governor v0.0.0-00010101000000-000000000000
	golang.org/x/sync v0.25.0
)
