-- The form of an id or hash: the text without case, blanks, quotes, brackets, leading zeros, a trailing .0, separators of
-- thousands, an exponent, the digits of a whole number that no double holds, the escapes of a URL, and the dashes of a
-- UUID. Source: taxonomy.md 8, 2; interpretations.md, 91.
CREATE MACRO bare_name(name) AS lower(translate(nfc_normalize(coalesce(try(url_decode(name)), name)),
    concat(' "{}[]''', chr(0), chr(9), chr(10), chr(13), chr(160), chr(8203), chr(65279)), ''));
CREATE MACRO as_double(digits) AS CASE WHEN length(digits) BETWEEN 16 AND 38
    THEN CAST(CAST(try_cast(digits AS DOUBLE) AS HUGEINT) AS VARCHAR) ELSE digits END;
CREATE MACRO digits_of(number) AS as_double(ltrim(number, '+0'));
CREATE MACRO form_of(name) AS CASE
    WHEN regexp_full_match(bare_name(name), '[+]?[0-9]+([.]0*)?') THEN digits_of(split_part(bare_name(name), '.', 1))
    WHEN regexp_full_match(bare_name(name), '[+]?[0-9]{1,3}(,[0-9]{3})+([.]0*)?')
        THEN digits_of(replace(split_part(bare_name(name), '.', 1), ',', ''))
    WHEN regexp_full_match(bare_name(name), '[+]?[0-9]{1,3}([.][0-9]{3})+') THEN digits_of(replace(bare_name(name), '.', ''))
    WHEN regexp_full_match(bare_name(name), '[0-9]([.][0-9]{1,16})?e[+]?1?[0-9]')
        THEN as_double(CAST(try_cast(bare_name(name) AS DECIMAL(38, 0)) AS VARCHAR))
    WHEN regexp_full_match(bare_name(name), '[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}')
        THEN replace(bare_name(name), '-', '')
    ELSE bare_name(name) END;
-- So many forms of a side are kept to be compared.
CREATE MACRO most_compared() AS 10000;
