-- The form of an id or hash: the text without case, blanks, quotes, leading zeros, a trailing .0 and the dashes of a
-- UUID. Source: taxonomy.md 8, 2; interpretations.md, 91.
CREATE MACRO bare_name(name) AS lower(translate(nfc_normalize(name),
    concat(' "{}''', chr(9), chr(10), chr(13), chr(160), chr(8203), chr(65279)), ''));
CREATE MACRO form_of(name) AS CASE
    WHEN regexp_full_match(bare_name(name), '[+]?[0-9]+([.]0*)?') THEN ltrim(split_part(bare_name(name), '.', 1), '+0')
    WHEN regexp_full_match(bare_name(name), '[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}')
        THEN replace(bare_name(name), '-', '')
    ELSE bare_name(name) END;
-- So many forms of a side are kept to be compared.
CREATE MACRO most_compared() AS 10000;
