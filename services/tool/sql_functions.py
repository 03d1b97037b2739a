"""Lists the functions that a query may use beyond those of standard SQL."""

ALLOWED_FUNCTIONS = frozenset(
    """
    any_value approx_count_distinct approx_quantile arbitrary arg_max arg_min array_agg
    avg bar bit_and bit_or bool_and bool_or concat_ws corr count_if count_star covar_pop
    covar_samp entropy favg first fsum geomean geometric_mean group_concat histogram kahan_sum
    kurtosis last listagg mad max_by mean median min_by mode product quantile quantile_cont
    quantile_disc regr_avgx regr_avgy regr_count regr_intercept regr_r2 regr_slope sem skewness
    stddev stddev_pop stddev_samp string_agg sum_no_overflow sumkahan var_pop var_samp variance
    cume_dist dense_rank first_value lag last_value lead nth_value ntile percent_rank rank
    row_number
    abs acos add asin atan atan2 cbrt ceil ceiling cos cot degrees div divide even exp factorial
    fdiv floor fmod gamma gcd greatest isfinite isinf isnan lcm least lgamma ln log log10 log2 mod
    multiply nextafter pi pow power radians round round_even sign sin sqrt subtract tan trunc
    ascii bit_length chr contains damerau_levenshtein editdist3 ends_with format format_bytes
    hamming initcap instr jaccard jaro_similarity jaro_winkler_similarity lcase left len length
    levenshtein like_escape lower lpad ltrim mismatches nfc_normalize not_like_escape ord position
    prefix printf regexp_extract regexp_extract_all regexp_full_match regexp_matches
    regexp_replace regexp_split_to_array replace reverse right rpad rtrim split split_part
    starts_with str_split str_split_regex string_split string_split_regex string_to_array
    strip_accents strlen strpos substr substring substring_grapheme suffix translate trim ucase
    unicode upper
    age century date_add date_diff date_part date_sub date_trunc datediff datepart datesub
    datetrunc day dayname dayofmonth dayofweek dayofyear decade epoch epoch_ms era extract hour
    isodow isoyear julian last_day make_date make_time make_timestamp microsecond millennium
    millisecond minute month monthname quarter second strftime strptime time_bucket timezone
    to_days to_hours to_minutes to_months to_quarters to_seconds to_weeks to_years today
    try_strptime week weekday weekofyear year yearweek now
    array_length cardinality element_at flatten generate_series list_aggregate list_aggr list_avg
    list_concat list_contains list_count list_distinct list_extract list_has list_max list_min
    list_position list_reverse list_slice list_sort list_sum list_unique list_value map map_entries
    map_extract map_keys map_values range struct_extract struct_pack unnest
    alias coalesce constant_or_null if ifnull nullif typeof
    """.split()
)
"""Names, lower case, of functions over values alone: none reads files, settings or the network."""

REFUSED_PREFIXES = (
    "read_",
    "current_catalog",
    "current_database",
    "current_role",
    "current_schema",
    "current_user",
    "current_version",
    "session_user",
    "version",
)
"""How the names of refused functions begin that the parser knows by name."""
