// expected-error-re@+1 {{ {{(a|a|ab)*(.*.*)*$X}} }}
"mx.xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"() : () -> ()
